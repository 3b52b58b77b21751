variable "environment" {
  description = "The name of the environment, as in `sluice run --env NAME`. It is part of the names of all that is made."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,19}$", var.environment))
    error_message = "Write a small letter, then up to 19 small letters, digits and hyphens."
  }
}

variable "region" {
  description = "The region of AWS."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2,4}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "Write a region, such as eu-central-1."
  }
}

variable "profile" {
  description = "A profile of this machine's AWS settings; null: the login of the environment."
  type        = string
  default     = null
}

variable "endpoint" {
  description = "The address of services that speak like AWS, for tests on one machine; null: AWS."
  type        = string
  default     = null

  validation {
    condition     = var.endpoint == null || can(regex("^https?://[^/]+$", var.endpoint))
    error_message = "Write http:// or https://, a host and a port."
  }
}

variable "bucket" {
  description = "The name of the bucket of the tables' files."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "Write 3 to 63 small letters, digits, dots and hyphens, with a letter or digit first and last."
  }
}

variable "own_bucket" {
  description = "Whether the bucket exists already. Then its settings stay as they are, and so does the bucket when all else is deleted."
  type        = bool
  default     = false
}

variable "folder" {
  description = "The folder in the bucket that has the tables."
  type        = string
  default     = "lake"

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$", var.folder))
    error_message = "Write a path without a slash at its beginning and its end, such as lake."
  }
}

variable "databases" {
  description = "The databases of Glue: one for each namespace of your tables."
  type        = set(string)

  validation {
    condition     = length(var.databases) > 0 && alltrue([for name in var.databases : can(regex("^[a-z0-9_]{1,255}$", name))])
    error_message = "Write at least one name, of small letters, digits and underscores."
  }
}

variable "kms_key" {
  description = "The ARN of a key of KMS that encrypts files and secrets; null: one is made, in a bucket of your own for secrets alone."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key == null || can(regex("^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/.+$", var.kms_key))
    error_message = "Write the ARN of a key, such as arn:aws:kms:eu-central-1:123456789012:key/0a1b."
  }
}

variable "trusted" {
  description = "Who may take each role: ARNs of users and roles, by `ingest`, `maintain` and `read`. A role that is left out is for the account."
  type        = map(set(string))
  default     = {}

  validation {
    condition     = alltrue([for role, arns in var.trusted : contains(["ingest", "maintain", "read"], role) && length(arns) > 0])
    error_message = "The roles are ingest, maintain and read, each with at least one ARN."
  }
  validation {
    condition     = alltrue(flatten([for role, arns in var.trusted : [for arn in arns : can(regex("^arn:[a-z-]+:(iam|sts)::", arn))]]))
    error_message = "Write ARNs of users and roles, such as arn:aws:iam::123456789012:role/airflow."
  }
}

variable "external_id" {
  description = "What those must say who take a role; null: a text is made of the account and the environment."
  type        = string
  default     = null

  validation {
    condition     = var.external_id == null || can(regex("^[A-Za-z0-9+=,.@:/_-]{2,1224}$", var.external_id))
    error_message = "Write at least 2 letters, digits and signs of +=,.@:/_-"
  }
}

variable "read_external_ids" {
  description = "What else those may say who take the role read, such as the id that Snowflake makes for an integration of Glue."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for id in var.read_external_ids : can(regex("^[A-Za-z0-9+=,.@:/_-]{2,1224}$", id))])
    error_message = "Write at least 2 letters, digits and signs of +=,.@:/_-"
  }
}

variable "secrets" {
  description = "Names of secrets that are made without a value. You put the value in, so that it is in no file of Terraform."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for name in var.secrets : can(regex("^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$", name))])
    error_message = "Write names of letters, digits, underscores, dots and hyphens."
  }
}

variable "random_secrets" {
  description = "Names of secrets that get a random value if they have none, such as the key of a mask. Terraform does not see it."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for name in var.random_secrets : can(regex("^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$", name))])
    error_message = "Write names of letters, digits, underscores, dots and hyphens."
  }
  validation {
    condition     = length(setintersection(var.secrets, var.random_secrets)) == 0
    error_message = "A name is either in secrets or in random_secrets."
  }
}

variable "rotated_secrets" {
  description = "Those of the secrets that documents `keys` replace: the roles ingest and maintain may write them."
  type        = set(string)
  default     = []

  validation {
    condition     = length(setsubtract(var.rotated_secrets, setunion(var.secrets, var.random_secrets))) == 0
    error_message = "Write names of secrets or random_secrets."
  }
}

variable "recovery_days" {
  description = "How many days a deleted secret and a deleted key can be brought back. 0 deletes secrets at once; a key stays for 7."
  type        = number
  default     = 30

  validation {
    condition     = var.recovery_days == 0 || (var.recovery_days >= 7 && var.recovery_days <= 30)
    error_message = "Write 7 to 30, or 0."
  }
}

variable "keep_deleted_days" {
  description = "How many days the bucket keeps files that were deleted or overwritten."
  type        = number
  default     = 30

  validation {
    condition     = var.keep_deleted_days >= 1
    error_message = "Write at least 1."
  }
}

variable "mail_from" {
  description = "The address that mails of exports and alerts come from: an identity of SES; null: none is made."
  type        = string
  default     = null

  validation {
    condition     = var.mail_from == null || can(regex("^[^@ ]+@[^@ ]+$", var.mail_from))
    error_message = "Write a mail address."
  }
}

variable "vpc" {
  description = "A network whose machines reach S3, Glue, STS and Secrets Manager without the internet; null: no endpoints are made."
  type = object({
    id              = string
    route_tables    = set(string)
    subnets         = set(string)
    security_groups = set(string)
  })
  default = null
}

variable "tags" {
  description = "Tags of all that is made, besides `sluice`."
  type        = map(string)
  default     = {}
}
