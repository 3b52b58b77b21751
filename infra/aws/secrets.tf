# Secrets without values, so that none is in Terraform's state: you put them in, and infra/deploy.sh makes random ones.

resource "aws_secretsmanager_secret" "secret" {
  for_each                = setunion(var.secrets, var.random_secrets)
  name                    = "${local.secrets_prefix}${each.value}"
  description             = "For the specs of Sluice: $${secret:${each.value}}"
  kms_key_id              = local.kms_key
  recovery_window_in_days = var.recovery_days
}
