locals {
  name    = "SLUICE_${upper(replace(var.environment, "-", "_"))}"
  comment = "Made by infra/deploy.sh for ${var.environment}"
}

resource "snowflake_warehouse" "this" {
  name                = local.name
  warehouse_size      = var.warehouse_size
  auto_suspend        = var.suspend_seconds
  auto_resume         = "true"
  initially_suspended = true
  comment             = local.comment
}

resource "snowflake_database" "this" {
  name    = local.name
  comment = local.comment

  depends_on = [snowflake_external_volume.this, snowflake_catalog_integration_aws_glue.this] # its tables go before what they use
}

resource "snowflake_schema" "this" {
  for_each = var.schemas
  database = snowflake_database.this.name
  name     = each.value
  comment  = local.comment
}
