#!/bin/bash
# What `version` says, in repositories made for it. Exit code 77: skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
script=$here/../../packaging/cmake
command -v git >/dev/null || {
  echo "skipped: git is missing (package git)"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Nothing of whoever runs this: no configuration, no repository above.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_CEILING_DIRECTORIES=$work
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
failed=0 count=0

# expect PATTERN FOLDER [GIVEN]: the whole version, as a regular expression.
expect() {
  local text
  count=$((count + 1))
  text=$(write "$2" "${3-}")
  [[ $text =~ ^$1$ ]] && return
  echo "expected $1, got '$text'"
  failed=$((failed + 1))
}

write() {
  cmake -DSOURCE_DIR="$1" -DFALLBACK=0.1.0 -DGIVEN="$2" -DTEMPLATE="$script/version.cc.in" \
    -DOUTPUT="$work/version.cc" -P "$script/Version.cmake" 2>&1 || return 0
  sed -nE 's/.*return "(.*)";.*/\1/p' "$work/version.cc"
}

commit() {
  echo "$1" >"$work/repository/file"
  git -C "$work/repository" add file
  git -C "$work/repository" commit -q -m "$1"
}

mkdir "$work/plain"
git init -q "$work/repository"
expect '0\.1\.0' "$work/plain"
commit one
expect '0\.1\.0\+g[0-9a-f]{12}' "$work/repository"
git -C "$work/repository" tag v1.2.3
expect '1\.2\.3' "$work/repository"
echo changed >"$work/repository/file"
expect '1\.2\.3\+dirty' "$work/repository"
commit two
expect '1\.2\.3\+1\.g[0-9a-f]{12}' "$work/repository"
echo changed >"$work/repository/file"
expect '1\.2\.3\+1\.g[0-9a-f]{12}\.dirty' "$work/repository"
# A folder inside somebody else's repository.
mkdir "$work/repository/sub"
expect '0\.1\.0' "$work/repository/sub"
expect '2\.0\.0~rc1' "$work/repository" '2.0.0~rc1'
# What `git describe` says may be given, as the Dockerfile's head has it.
expect '0\.1\.0\+ge572042' "$work/repository" e572042
expect '0\.1\.0\+g4fb245f01234\.dirty' "$work/plain" 4fb245f01234.dirty
expect '1\.2\.3\+5\.g0123456789ab' "$work/plain" 1.2.3-5-g0123456789ab
expect '1\.2\.3\+5\.g0123456789ab\.dirty' "$work/plain" v1.2.3-5-g0123456789ab.dirty
expect '1\.2\.3\+dirty' "$work/plain" v1.2.3.dirty
expect '0\.1\.0\+g0123456789ab\.dirty' "$work/plain" 0.1.0+g0123456789ab.dirty
expect ".*'x;y\"' is no version.*" "$work/repository" 'x;y"'
# The same text leaves the file alone, so nothing is compiled.
write "$work/plain" '' >/dev/null
touch -d @0 "$work/version.cc"
write "$work/plain" '' >/dev/null
count=$((count + 1))
[[ $(stat -c %Y "$work/version.cc") == 0 ]] || {
  echo "the file was written anew"
  failed=$((failed + 1))
}
echo "$((count - failed)) passed, $failed failed"
((failed == 0))
