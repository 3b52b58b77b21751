# Who reads tables, and who loads them by Kafka's connector.
resource "snowflake_account_role" "this" {
  for_each = toset(["READ", "LOAD"])
  name     = "${local.name}_${each.value}"
  comment  = local.comment
}

resource "snowflake_service_user" "loader" {
  name              = "${local.name}_LOADER"
  rsa_public_key    = var.public_key
  default_role      = snowflake_account_role.this["LOAD"].name
  default_warehouse = snowflake_warehouse.this.name
  comment           = local.comment

  lifecycle {
    ignore_changes = [rsa_public_key, rsa_public_key_2] # `sluice keys` replaces them, in both slots by turns
  }
}

resource "snowflake_grant_account_role" "loader" {
  role_name = snowflake_account_role.this["LOAD"].name
  user_name = snowflake_service_user.loader.name
}

# What each role may use: the keys say it in the plan.
locals {
  integrations = concat(snowflake_catalog_integration_aws_glue.this[*].name, snowflake_storage_integration_aws.exports[*].name)
  usage = merge(
    { for role in ["READ", "LOAD"] : "${role} warehouse" => { role = role, type = "WAREHOUSE", name = snowflake_warehouse.this.name } },
    { for role in ["READ", "LOAD"] : "${role} database" => { role = role, type = "DATABASE", name = snowflake_database.this.name } },
    { "LOAD volume" = { role = "LOAD", type = "EXTERNAL VOLUME", name = snowflake_external_volume.this.name } },
    { for name in local.integrations : "LOAD ${name}" => { role = "LOAD", type = "INTEGRATION", name = name } },
  )
}

resource "snowflake_grant_privileges_to_account_role" "usage" {
  for_each          = local.usage
  account_role_name = snowflake_account_role.this[each.value.role].name
  privileges        = ["USAGE"]

  on_account_object {
    object_type = each.value.type
    object_name = each.value.name
  }
}

resource "snowflake_grant_privileges_to_account_role" "read_schema" {
  for_each          = snowflake_schema.this
  account_role_name = snowflake_account_role.this["READ"].name
  privileges        = ["USAGE"]

  on_schema {
    schema_name = each.value.fully_qualified_name
  }
}

# The connector makes its pipes and owns its tables; tables of Iceberg are made by a role that may use the volume and Glue.
resource "snowflake_grant_privileges_to_account_role" "load_schema" {
  for_each          = snowflake_schema.this
  account_role_name = snowflake_account_role.this["LOAD"].name
  privileges        = ["USAGE", "CREATE TABLE", "CREATE ICEBERG TABLE", "CREATE PIPE", "CREATE STAGE"]

  on_schema {
    schema_name = each.value.fully_qualified_name
  }
}

resource "snowflake_grant_privileges_to_account_role" "read_tables" {
  for_each = {
    for pair in setproduct(keys(snowflake_schema.this), ["TABLES", "ICEBERG TABLES"]) : "${pair[0]} ${pair[1]}" => {
      schema = snowflake_schema.this[pair[0]].fully_qualified_name, kind = pair[1]
    }
  }
  account_role_name = snowflake_account_role.this["READ"].name
  privileges        = ["SELECT"]

  on_schema_object {
    future {
      object_type_plural = each.value.kind
      in_schema          = each.value.schema
    }
  }
}
