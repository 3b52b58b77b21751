locals {
  make_key = "confluent api-key create --service-account ${confluent_service_account.ingest.id} --resource"
}

output "environment" {
  description = "What `sluice init --from-infra` writes into specs/environments/. None of it is a secret."
  value = {
    name        = var.environment
    environment = local.environment_id
    cluster     = local.cluster_id
    bootstrap   = trimprefix(local.bootstrap, "SASL_SSL://")
    registry    = var.registry ? data.confluent_schema_registry_cluster.this[0].rest_endpoint : null
    account     = confluent_service_account.ingest.id
    next = concat(
      ["${local.make_key} ${local.cluster_id}   # into the secret `kafka`: {\"key\": \"…\", \"secret\": \"…\"}"],
      var.registry ? ["${local.make_key} ${data.confluent_schema_registry_cluster.this[0].id}   # into the secret `registry`, likewise"] : [],
    )
  }
}
