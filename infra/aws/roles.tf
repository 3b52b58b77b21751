# Three roles: who writes tables deletes no files but older metadata, which Iceberg replaces with each commit; who reads writes nothing.

data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}

locals {
  account        = data.aws_caller_identity.current.account_id
  partition      = data.aws_partition.current.partition
  bucket_arn     = "arn:${local.partition}:s3:::${var.bucket}"
  has_tls        = var.endpoint == null || startswith(coalesce(var.endpoint, "https:"), "https:")
  kms_key        = var.kms_key != null ? var.kms_key : aws_kms_key.lake[0].arn
  secrets_prefix = "sluice/${var.environment}/"
  external_id    = var.external_id != null ? var.external_id : "sluice-${var.environment}-${substr(sha256(local.account), 0, 12)}"

  # Whether there is a secret of the whole name `kafka.key`, or a field of `kafka`, is asked of names that do not exist, too.
  looks_at_secrets = length(var.rotated_secrets) > 0 ? ["secretsmanager:DescribeSecret"] : []

  read_files  = ["s3:GetObject", "s3:GetObjectVersion"]
  write_files = ["s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
  read_glue   = ["glue:GetDatabase", "glue:GetDatabases", "glue:GetTable", "glue:GetTables", "glue:GetPartitions"]
  write_glue  = ["glue:CreateTable", "glue:UpdateTable"]

  roles = {
    ingest = {
      purpose = "sluice run, stream and Dagster: writes tables, deletes older metadata alone"
      files   = concat(local.read_files, local.write_files)
      deletes = "*/metadata/*.metadata.json"
      keys    = ["kms:Decrypt", "kms:GenerateDataKey"]
      tables  = concat(local.read_glue, local.write_glue)
      secrets = true
    }
    maintain = {
      purpose = "sluice maintain, forget, drop and rebuild: deletes files and tables, too"
      files   = concat(local.read_files, local.write_files)
      deletes = "*"
      keys    = ["kms:Decrypt", "kms:GenerateDataKey"]
      tables  = concat(local.read_glue, local.write_glue, ["glue:DeleteTable"])
      secrets = true
    }
    read = {
      purpose = "readers of tables: changes nothing"
      files   = local.read_files
      deletes = null
      keys    = ["kms:Decrypt"]
      tables  = local.read_glue
      secrets = false
    }
  }

  # Each request to Glue asks for the catalog, the database and the table.
  glue = "arn:${local.partition}:glue:${var.region}:${local.account}"
  names_in_glue = concat(
    ["${local.glue}:catalog"],
    [for database in aws_glue_catalog_database.namespace : "${local.glue}:database/${database.name}"],
    [for database in aws_glue_catalog_database.namespace : "${local.glue}:table/${database.name}/*"],
  )
}

data "aws_iam_policy_document" "trust" {
  for_each = local.roles

  statement {
    actions = ["sts:AssumeRole", "sts:TagSession"] # Snowflake tags its sessions

    principals {
      type        = "AWS"
      identifiers = lookup(var.trusted, each.key, ["arn:${local.partition}:iam::${local.account}:root"])
    }
    condition {
      test     = "StringEquals"
      variable = "sts:ExternalId"
      values   = concat([local.external_id], each.key == "read" ? sort(var.read_external_ids) : [])
    }
  }
}

data "aws_iam_policy_document" "rights" {
  for_each = local.roles

  statement {
    sid       = "Files"
    actions   = each.value.files
    resources = ["${local.bucket_arn}/${var.folder}/*"]
  }
  dynamic "statement" {
    for_each = each.value.deletes == null ? [] : [each.value.deletes]
    content {
      sid       = "Deletes"
      actions   = ["s3:DeleteObject"]
      resources = ["${local.bucket_arn}/${var.folder}/${statement.value}"]
    }
  }
  statement {
    sid       = "Names"
    actions   = ["s3:ListBucket"]
    resources = [local.bucket_arn]
    condition {
      test     = "StringLikeIfExists" # a request for a file that is not there has no prefix
      variable = "s3:prefix"
      values   = ["${var.folder}/*"]
    }
  }
  statement {
    sid       = "Bucket"
    actions   = ["s3:GetBucketLocation"]
    resources = [local.bucket_arn]
  }
  statement {
    sid       = "Keys"
    actions   = each.value.keys
    resources = [local.kms_key]
  }
  statement {
    sid       = "Tables"
    actions   = each.value.tables
    resources = local.names_in_glue
  }
  dynamic "statement" {
    for_each = each.value.secrets ? [local.secrets_prefix] : []
    content {
      sid       = "Secrets"
      actions   = concat(["secretsmanager:GetSecretValue"], local.looks_at_secrets)
      resources = ["arn:${local.partition}:secretsmanager:${var.region}:${local.account}:secret:${statement.value}*"]
    }
  }
  dynamic "statement" {
    for_each = each.value.secrets && length(var.rotated_secrets) > 0 ? [sort(var.rotated_secrets)] : []
    content {
      sid       = "RotatedSecrets"
      actions   = ["secretsmanager:PutSecretValue", "secretsmanager:UpdateSecretVersionStage"]
      resources = [for name in statement.value : aws_secretsmanager_secret.secret[name].arn]
    }
  }
}

resource "aws_iam_role" "role" {
  for_each           = local.roles
  name               = "sluice-${var.environment}-${each.key}"
  description        = each.value.purpose
  assume_role_policy = data.aws_iam_policy_document.trust[each.key].json
}

resource "aws_iam_role_policy" "rights" {
  for_each = local.roles
  name     = "sluice"
  role     = aws_iam_role.role[each.key].id
  policy   = data.aws_iam_policy_document.rights[each.key].json
}
