#!/bin/sh
# Nightly backup of the cupboard computer, started by cron at 03:15.
# Keeps seven days and twelve months. Complains when the disk is nearly full or the last backup is too old.
set -eu

from=/var/lib/orchard
to=/mnt/samir/orchard
today=$(date +%F)

used=$(df --output=pcent "$to" | tail -n 1 | tr -dc 0-9)
if [ "$used" -gt 90 ]; then
    send-message samir "backup disk is $used % full"
fi

# The loans database may be in use, so copy it through SQLite and not as a file.
sqlite3 "$from/loans.db" ".backup '$from/loans.copy.db'"

mkdir -p "$to/daily/$today"
rsync --archive --delete --exclude loans.db "$from/" "$to/daily/$today/"

# On the first of the month, keep a copy for a year.
if [ "$(date +%d)" = 01 ]; then
    cp --archive --link "$to/daily/$today" "$to/monthly/$(date +%Y-%m)"
fi

find "$to/daily" -mindepth 1 -maxdepth 1 -type d -mtime +7 -exec rm -r {} +
find "$to/monthly" -mindepth 1 -maxdepth 1 -type d -mtime +366 -exec rm -r {} +
