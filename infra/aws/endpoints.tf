# Endpoints in a network without a way to the internet. That of S3 costs nothing, the others by the hour.

resource "aws_vpc_endpoint" "s3" {
  count             = var.vpc == null ? 0 : 1
  vpc_id            = var.vpc.id
  service_name      = "com.amazonaws.${var.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = var.vpc.route_tables
}

resource "aws_vpc_endpoint" "service" {
  for_each            = var.vpc == null ? toset([]) : toset(["glue", "kms", "secretsmanager", "sts"])
  vpc_id              = var.vpc.id
  service_name        = "com.amazonaws.${var.region}.${each.value}"
  vpc_endpoint_type   = "Interface"
  private_dns_enabled = true
  subnet_ids          = var.vpc.subnets
  security_group_ids  = var.vpc.security_groups
}
