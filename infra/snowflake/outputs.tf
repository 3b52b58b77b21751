output "environment" {
  description = "What was made. None of it is a secret."
  value = {
    name      = var.environment
    warehouse = snowflake_warehouse.this.name
    database  = snowflake_database.this.name
    schemas   = sort(var.schemas)
    volume    = snowflake_external_volume.this.name
    glue      = one(snowflake_catalog_integration_aws_glue.this[*].name)
    exports   = one(snowflake_storage_integration_aws.exports[*].name)
    reader    = snowflake_account_role.this["READ"].name
    loader    = snowflake_service_user.loader.name
    next = concat(
      ["DESC EXTERNAL VOLUME ${snowflake_external_volume.this.name};   -- in Snowflake: its STORAGE_AWS_IAM_USER_ARN belongs to `trusted: {read: […]}` of `aws`"],
      [for name in snowflake_catalog_integration_aws_glue.this[*].name : "DESC CATALOG INTEGRATION ${name};   -- likewise its GLUE_AWS_IAM_USER_ARN; and its GLUE_AWS_EXTERNAL_ID belongs to `read_external_ids` of `aws`"],
      var.public_key == null ? ["sluice keys rotate …   # a document `keys`, of: snowflake_user, user: ${snowflake_service_user.loader.name}, makes its first key"] : [],
    )
  }
}
