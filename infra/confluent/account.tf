# Its API keys are made by hand: Terraform would keep their secrets in its state.
resource "confluent_service_account" "ingest" {
  display_name = "sluice-${var.environment}-ingest"
  description  = "Sluice reads topics into tables, and sends rows onward."
}

locals {
  kafka = "${local.cluster_name}/kafka=${local.cluster_id}"
  rights = merge(
    { for name in var.topics : "read ${name}" => { role = "DeveloperRead", of = "${local.kafka}/topic=${name}" } },
    { for name in var.onward_topics : "read again ${name}" => { role = "DeveloperRead", of = "${local.kafka}/topic=${name}" } },
    { for name in var.onward_topics : "send to ${name}" => { role = "DeveloperWrite", of = "${local.kafka}/topic=${name}" } },
    { for name in var.onward_topics : "create ${name}" => { role = "DeveloperManage", of = "${local.kafka}/topic=${name}" } },
    length(var.onward_topics) > 0 ? {
      "take turns in sending" = { role = "DeveloperWrite", of = "${local.kafka}/transactional-id=sluice-*" }
    } : {},
    var.registry ? {
      "read schemas" = { role = "DeveloperRead", of = "${data.confluent_schema_registry_cluster.this[0].resource_name}/subject=*" }
    } : {},
    { for name in var.registry ? var.onward_topics : [] : "register ${name}" => {
      role = "DeveloperWrite"
      of   = "${data.confluent_schema_registry_cluster.this[0].resource_name}/subject=${endswith(name, "*") ? name : "${name}-*"}"
    } },
  )
}

resource "confluent_role_binding" "right" {
  for_each    = local.rights
  principal   = "User:${confluent_service_account.ingest.id}"
  role_name   = each.value.role
  crn_pattern = each.value.of
}
