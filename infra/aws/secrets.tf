# Secrets, whose values are never in Terraform's state: you put them in, or they are made while Terraform runs and only written.

resource "aws_secretsmanager_secret" "secret" {
  for_each                = setunion(var.secrets, var.random_secrets)
  name                    = "${local.secrets_prefix}${each.value}"
  description             = "For the specs of Sluice: $${secret:${each.value}}"
  kms_key_id              = local.kms_key
  recovery_window_in_days = var.recovery_days
}

ephemeral "aws_secretsmanager_random_password" "value" {
  for_each            = var.random_secrets
  password_length     = 48
  exclude_punctuation = true
}

resource "aws_secretsmanager_secret_version" "random" {
  for_each                 = var.random_secrets
  secret_id                = aws_secretsmanager_secret.secret[each.value].id
  secret_string_wo         = ephemeral.aws_secretsmanager_random_password.value[each.value].random_password
  secret_string_wo_version = 1 # written once: `sluice keys` makes new ones
}
