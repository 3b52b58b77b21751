resource "confluent_environment" "own" {
  count        = var.own_environment == null ? 1 : 0
  display_name = "sluice-${var.environment}"

  stream_governance {
    package = var.governance
  }
}

locals {
  environment_id = var.own_environment == null ? confluent_environment.own[0].id : var.own_environment
  cluster_id     = var.own_cluster == null ? confluent_kafka_cluster.own[0].id : var.own_cluster
  cluster_name   = var.own_cluster == null ? confluent_kafka_cluster.own[0].rbac_crn : data.confluent_kafka_cluster.given[0].rbac_crn
  bootstrap      = var.own_cluster == null ? confluent_kafka_cluster.own[0].bootstrap_endpoint : data.confluent_kafka_cluster.given[0].bootstrap_endpoint
}

resource "confluent_kafka_cluster" "own" {
  count        = var.own_cluster == null ? 1 : 0
  display_name = "sluice-${var.environment}"
  availability = var.availability
  cloud        = var.cloud
  region       = var.region

  environment {
    id = local.environment_id
  }

  dynamic "standard" {
    for_each = var.type == "standard" ? [1] : []
    content {}
  }

  dynamic "enterprise" {
    for_each = var.type == "enterprise" ? [1] : []
    content {}
  }

  dynamic "dedicated" {
    for_each = var.type == "dedicated" ? [1] : []
    content {
      cku = var.units
    }
  }
}

data "confluent_kafka_cluster" "given" {
  count = var.own_cluster == null ? 0 : 1
  id    = var.own_cluster

  environment {
    id = local.environment_id
  }
}

# An environment gets its registry with its first cluster.
data "confluent_schema_registry_cluster" "this" {
  count = var.registry ? 1 : 0

  environment {
    id = local.environment_id
  }

  depends_on = [confluent_kafka_cluster.own]
}
