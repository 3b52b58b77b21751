# The key that encrypts files and secrets. AWS makes new material for it each year, and keeps what decrypts older files.

resource "aws_kms_key" "lake" {
  count                   = var.kms_key == null ? 1 : 0
  description             = "Files and secrets of Sluice, ${var.environment}"
  enable_key_rotation     = true
  deletion_window_in_days = max(var.recovery_days, 7)
}

resource "aws_kms_alias" "lake" {
  count         = var.kms_key == null ? 1 : 0
  name          = "alias/sluice-${var.environment}"
  target_key_id = aws_kms_key.lake[0].key_id
}
