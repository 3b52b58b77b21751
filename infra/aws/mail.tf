# The address that mails come from. AWS sends it a mail with a link that its owner has to open.

resource "aws_sesv2_email_identity" "sender" {
  count          = var.mail_from == null ? 0 : 1
  email_identity = var.mail_from
}
