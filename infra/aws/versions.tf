terraform {
  required_version = ">= 1.11, < 2.0" # locks in S3

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "5.100.0"
    }
  }
}

provider "aws" {
  region            = var.region
  profile           = var.profile
  s3_use_path_style = var.endpoint != null

  dynamic "endpoints" {
    for_each = var.endpoint == null ? [] : [var.endpoint]
    content {
      ec2            = endpoints.value
      glue           = endpoints.value
      iam            = endpoints.value
      kms            = endpoints.value
      s3             = endpoints.value
      secretsmanager = endpoints.value
      sesv2          = endpoints.value
      sts            = endpoints.value
    }
  }

  default_tags {
    tags = merge(var.tags, { sluice = var.environment })
  }
}
