# A database of Glue for each namespace.

resource "aws_glue_catalog_database" "namespace" {
  for_each     = var.databases
  name         = each.value
  description  = "Tables of Sluice, ${var.environment}"
  location_uri = "s3://${var.bucket}/${var.folder}/${each.value}.db"
}
