terraform {
  required_version = ">= 1.11, < 2.0" # locks in S3

  required_providers {
    snowflake = {
      source  = "snowflakedb/snowflake"
      version = "2.20.0"
    }
  }
}

# The login is that of a profile, or of SNOWFLAKE_ORGANIZATION_NAME, SNOWFLAKE_ACCOUNT_NAME and SNOWFLAKE_USER with a key: then
# SNOWFLAKE_AUTHENTICATOR is SNOWFLAKE_JWT, and SNOWFLAKE_PRIVATE_KEY has it.
provider "snowflake" {
  profile = var.profile
  role    = var.role
  preview_features_enabled = [
    "snowflake_catalog_integration_aws_glue_resource",
    "snowflake_external_volume_resource",
    "snowflake_storage_integration_aws_resource",
  ]
}
