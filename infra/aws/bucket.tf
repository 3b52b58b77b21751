# The bucket of the tables' files. One that exists already is left as it is.

resource "aws_s3_bucket" "lake" {
  count  = var.own_bucket ? 0 : 1
  bucket = var.bucket
}

resource "aws_s3_bucket_versioning" "lake" {
  count  = var.own_bucket ? 0 : 1
  bucket = aws_s3_bucket.lake[0].id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "lake" {
  count  = var.own_bucket ? 0 : 1
  bucket = aws_s3_bucket.lake[0].id

  rule {
    bucket_key_enabled = true # one request to KMS for many files

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = local.kms_key
    }
  }
}

resource "aws_s3_bucket_public_access_block" "lake" {
  count                   = var.own_bucket ? 0 : 1
  bucket                  = aws_s3_bucket.lake[0].id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_lifecycle_configuration" "lake" {
  count      = var.own_bucket ? 0 : 1
  bucket     = aws_s3_bucket.lake[0].id
  depends_on = [aws_s3_bucket_versioning.lake]

  rule {
    id     = "deleted-files"
    status = "Enabled"
    filter {}

    noncurrent_version_expiration {
      noncurrent_days = var.keep_deleted_days
    }
    expiration {
      expired_object_delete_marker = true
    }
  }

  rule {
    id     = "unfinished-uploads"
    status = "Enabled"
    filter {}

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }
}

data "aws_iam_policy_document" "tls_only" {
  statement {
    sid       = "TlsOnly"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [local.bucket_arn, "${local.bucket_arn}/*"]

    principals {
      type        = "*"
      identifiers = ["*"]
    }
    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_s3_bucket_policy" "lake" {
  count      = var.own_bucket || !local.has_tls ? 0 : 1
  bucket     = aws_s3_bucket.lake[0].id
  policy     = data.aws_iam_policy_document.tls_only.json
  depends_on = [aws_s3_bucket_public_access_block.lake] # two changes of a bucket's access at once are refused
}
