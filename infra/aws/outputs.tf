output "environment" {
  description = "What `sluice init --from-infra` writes into specs/environments/. None of it is a secret."
  value = {
    name           = var.environment
    region         = var.region
    endpoint       = var.endpoint
    warehouse      = "s3://${var.bucket}/${var.folder}"
    databases      = sort(var.databases)
    kms_key        = var.own_bucket ? var.kms_key : local.kms_key # a made key goes with the environment, the files of your bucket do not
    external_id    = local.external_id
    secrets_prefix = local.secrets_prefix
    secrets        = sort(var.secrets)
    random_secrets = sort(var.random_secrets)
    mail_from      = var.mail_from
    roles          = { for name, role in aws_iam_role.role : name => role.arn }
  }
}
