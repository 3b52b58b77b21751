terraform {
  required_version = ">= 1.11, < 2.0" # locks in S3

  required_providers {
    confluent = {
      source  = "confluentinc/confluent"
      version = "2.83.0"
    }
  }
}

# The login is a Cloud API key: CONFLUENT_CLOUD_API_KEY and CONFLUENT_CLOUD_API_SECRET.
provider "confluent" {}
