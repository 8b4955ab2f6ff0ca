"""What the readers of mail share: header, body, enclosed mails, quotations."""
