variable "environment" {
  description = "The name of the environment, as in `sluice run --env NAME`. It is part of the names of all that is made."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,19}$", var.environment))
    error_message = "Write a small letter, then up to 19 small letters, digits and hyphens."
  }
}

variable "own_environment" {
  description = "The id of an environment of Confluent that exists already; null: one is made."
  type        = string
  default     = null

  validation {
    condition     = var.own_environment == null || can(regex("^env-[a-z0-9]+$", var.own_environment))
    error_message = "Write an id, such as env-abc123."
  }
}

variable "own_cluster" {
  description = "The id of a cluster that exists already, in `own_environment`; null: one is made."
  type        = string
  default     = null

  validation {
    condition     = var.own_cluster == null || can(regex("^lkc-[a-z0-9]+$", var.own_cluster))
    error_message = "Write an id, such as lkc-abc123."
  }
  validation {
    condition     = var.own_cluster == null || var.own_environment != null
    error_message = "A cluster that exists is in an environment that exists: write own_environment, too."
  }
}

variable "cloud" {
  description = "Whose machines the cluster runs on: AWS, AZURE or GCP. Null with a cluster of your own."
  type        = string
  default     = null

  validation {
    condition     = var.cloud == null ? var.own_cluster != null : contains(["AWS", "AZURE", "GCP"], var.cloud)
    error_message = "Write AWS, AZURE or GCP."
  }
}

variable "region" {
  description = "The region of that cloud. Null with a cluster of your own."
  type        = string
  default     = null

  validation {
    condition     = var.region == null ? var.own_cluster != null : can(regex("^[a-z0-9-]+$", var.region))
    error_message = "Write a region, such as eu-central-1."
  }
}

variable "type" {
  description = "The type of the cluster: standard, enterprise or dedicated. On a basic one, Confluent has no roles for topics."
  type        = string
  default     = "standard"

  validation {
    condition     = contains(["standard", "enterprise", "dedicated"], var.type)
    error_message = "Write standard, enterprise or dedicated."
  }
}

variable "units" {
  description = "The units (CKU) of a dedicated cluster."
  type        = number
  default     = 1

  validation {
    condition     = var.units >= 1 && floor(var.units) == var.units
    error_message = "Write a whole number, at least 1."
  }
}

variable "availability" {
  description = "In how many zones the cluster is: SINGLE_ZONE or MULTI_ZONE; LOW or HIGH for types that have these."
  type        = string
  default     = "SINGLE_ZONE"

  validation {
    condition     = contains(["SINGLE_ZONE", "MULTI_ZONE", "LOW", "HIGH"], var.availability)
    error_message = "Write SINGLE_ZONE, MULTI_ZONE, LOW or HIGH."
  }
  validation {
    condition     = var.own_cluster != null || var.type != "enterprise" || contains(["LOW", "HIGH"], var.availability)
    error_message = "An enterprise cluster has LOW or HIGH."
  }
}

variable "governance" {
  description = "The package of the schema registry of an environment that is made: ESSENTIALS or ADVANCED."
  type        = string
  default     = "ESSENTIALS"

  validation {
    condition     = contains(["ESSENTIALS", "ADVANCED"], var.governance)
    error_message = "Write ESSENTIALS or ADVANCED."
  }
}

variable "topics" {
  description = "The topics that are read: names, or beginnings of names with `*`, as in orders and shop.*"
  type        = set(string)

  validation {
    condition     = length(var.topics) > 0 && alltrue([for name in var.topics : can(regex("^([A-Za-z0-9._-]{1,249}|[A-Za-z0-9._-]{0,248}\\*)$", name))])
    error_message = "Write at least one name, of letters, digits, dots, underscores and hyphens; `*` stands at the end alone."
  }
}

variable "onward_topics" {
  description = "The topics that `also` sends rows to: names, or beginnings of names with `*`."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for name in var.onward_topics : can(regex("^([A-Za-z0-9._-]{1,249}|[A-Za-z0-9._-]{0,248}\\*)$", name))])
    error_message = "Write names of letters, digits, dots, underscores and hyphens; `*` stands at the end alone."
  }
}

variable "registry" {
  description = "Whether the schema registry of the environment is read."
  type        = bool
  default     = true
}
