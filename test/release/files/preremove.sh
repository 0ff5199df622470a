#!/bin/sh
# dpkg calls this with "upgrade" and rpm with 1 when a newer package follows.
case ${1-} in upgrade | failed-upgrade | 1) exit 0 ;; esac
command -v systemctl >/dev/null || exit 0
systemctl disable --now tenure-dashboard.service || :
