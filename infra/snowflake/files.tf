resource "snowflake_external_volume" "this" {
  name         = local.name
  allow_writes = "false"
  comment      = local.comment

  storage_location {
    storage_location_name   = local.name
    storage_provider        = "S3"
    storage_base_url        = "${var.location}/"
    storage_aws_role_arn    = var.read_role
    storage_aws_external_id = var.external_id
  }
}

resource "snowflake_catalog_integration_aws_glue" "this" {
  count             = var.glue ? 1 : 0
  name              = "${local.name}_GLUE"
  enabled           = true
  glue_aws_role_arn = var.read_role
  glue_catalog_id   = split(":", var.read_role)[4]
  glue_region       = var.aws_region
  comment           = local.comment
}

resource "snowflake_storage_integration_aws" "exports" {
  count                     = var.exports == null ? 0 : 1
  name                      = "${local.name}_EXPORTS"
  enabled                   = true
  storage_provider          = "S3"
  storage_allowed_locations = [var.exports]
  storage_aws_role_arn      = var.read_role
  storage_aws_external_id   = var.external_id
  comment                   = local.comment
}
