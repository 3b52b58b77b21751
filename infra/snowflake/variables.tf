variable "environment" {
  description = "The name of the environment, as in `sluice run --env NAME`. It is part of the names of all that is made."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,19}$", var.environment))
    error_message = "Write a small letter, then up to 19 small letters, digits and hyphens."
  }
}

variable "profile" {
  description = "A profile of this machine's Snowflake settings; null: the login of the environment's variables."
  type        = string
  default     = null
}

variable "role" {
  description = "The role of Snowflake that makes all this. Integrations and volumes need ACCOUNTADMIN, or a role that may make them."
  type        = string
  default     = "ACCOUNTADMIN"

  validation {
    condition     = can(regex("^[A-Za-z_][A-Za-z0-9_$]*$", var.role))
    error_message = "Write the name of a role, without quotes."
  }
}

variable "warehouse_size" {
  description = "The size of the warehouse."
  type        = string
  default     = "XSMALL"

  validation {
    condition     = contains(["XSMALL", "SMALL", "MEDIUM", "LARGE", "XLARGE", "XXLARGE"], var.warehouse_size)
    error_message = "Write XSMALL, SMALL, MEDIUM, LARGE, XLARGE or XXLARGE."
  }
}

variable "suspend_seconds" {
  description = "After how many seconds without a query the warehouse stops."
  type        = number
  default     = 60

  validation {
    condition     = var.suspend_seconds >= 30
    error_message = "Write at least 30."
  }
}

variable "schemas" {
  description = "The schemas of the database: one for each namespace of your tables."
  type        = set(string)

  validation {
    condition     = length(var.schemas) > 0 && alltrue([for name in var.schemas : can(regex("^[A-Z_][A-Z0-9_$]{0,254}$", name))])
    error_message = "Write at least one name, of capital letters, digits and underscores, as Snowflake has names that are written without quotes."
  }
}

variable "public_key" {
  description = "The public key of the user that loads: one line of base64, without its first and last line. `sluice keys` replaces it later."
  type        = string
  default     = null

  validation {
    condition     = var.public_key == null || can(regex("^[A-Za-z0-9+/]{300,}={0,2}$", var.public_key))
    error_message = "Write the base64 text of the key in one line, without -----BEGIN PUBLIC KEY-----."
  }
}

variable "location" {
  description = "Where the tables' files are, as `infra/aws` says it under `warehouse`."
  type        = string

  validation {
    condition     = can(regex("^s3://[a-z0-9][a-z0-9.-]+[a-z0-9](/[A-Za-z0-9_-]+)*$", var.location))
    error_message = "Write s3://bucket/folder."
  }
}

variable "read_role" {
  description = "The role of AWS that reads files and Glue: the role `read` of `infra/aws`."
  type        = string

  validation {
    condition     = can(regex("^arn:[a-z-]+:iam::[0-9]{12}:role/.+$", var.read_role))
    error_message = "Write an ARN, such as arn:aws:iam::123456789012:role/sluice-prod-read."
  }
}

variable "external_id" {
  description = "What Snowflake says when it takes the role for the files: the `external_id` of `infra/aws`."
  type        = string
}

variable "glue" {
  description = "Whether the tables are found in Glue; otherwise each table is named by its metadata file."
  type        = bool
  default     = true
}

variable "aws_region" {
  description = "The region of Glue."
  type        = string
}

variable "exports" {
  description = "Where files of exports are, which a stage may read, as s3://bucket/folder/; null: no integration for stages is made."
  type        = string
  default     = null

  validation {
    condition     = var.exports == null || can(regex("^s3://[a-z0-9][a-z0-9.-]+[a-z0-9]/([A-Za-z0-9_-]+/)*$", var.exports))
    error_message = "Write s3://bucket/folder/, with a slash at its end."
  }
}
