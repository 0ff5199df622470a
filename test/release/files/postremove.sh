#!/bin/sh
[ ! -d /run/systemd/system ] || systemctl daemon-reload || :
# dpkg --purge also removes the history that the dashboard keeps.
[ "${1-}" != purge ] || rm -rf /var/lib/tenure-dashboard /var/lib/private/tenure-dashboard
