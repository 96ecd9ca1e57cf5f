#!/bin/sh
# A lock of a cluster, by way of an agent, with curl.
#
#   sh lock.sh SOCKET [NAME]
#
# Holds the lock NAME while it counts to three. For a command that is to run alone, `quorate lock NAME -- COMMAND`
# does more: it ends the command in time.
set -eu

socket=${1:?the socket of an agent}
name=${2:-example}

# Asks the agent; fails with its sentence.
agent() {
    method=$1 path=$2
    shift 2
    curl --silent --show-error --fail-with-body --unix-socket "$socket" --request "$method" "http://agent$path" "$@"
}

# A field of a flat JSON object.
field() {
    sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"
}

# It may be silent for five seconds: every `check` below says that it is there.
session=$(agent POST /v1/sessions --json '{"ttl_ms": 5000}' | field session)
trap 'agent DELETE "/v1/sessions/$session"' EXIT

granted=$(agent POST "/v1/sessions/$session/locks" \
    --json "{\"name\": \"$name\", \"owner\": \"lock.sh\", \"wait_ms\": 10000}")
grant=$(echo "$granted" | field grant)
echo "holds $name, fence $(echo "$granted" | field fence)"

for number in 1 2 3; do
    # Fails if the lock is lost, and so does the script.
    left=$(agent GET "/v1/sessions/$session/locks/$name?grant=$grant" | field left_ms)
    echo "$number, may go on for $left ms"
done

agent DELETE "/v1/sessions/$session/locks/$name?grant=$grant"
