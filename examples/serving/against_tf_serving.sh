#!/usr/bin/env bash
# Sends the same requests to TF Serving and to `xlnet serve`, and compares status and answers.
#
#     examples/serving/against_tf_serving.sh models spam
#
# for the model models/spam/1. It needs docker, with the image tensorflow/serving, curl, and
# pip install ".[serve]". Numbers may differ by 1e-5, texts of errors by their words.
set -euo pipefail

if [ $# -ne 2 ]; then
    echo "usage: $0 DIRECTORY MODEL" >&2
    exit 2
fi
directory=$(realpath "$1")
model=$2
theirs=http://127.0.0.1:8601
ours=http://127.0.0.1:8602
folder=$(mktemp -d)
container=$(docker run --detach --rm --publish 127.0.0.1:8601:8501 \
    --volume "$directory/$model:/models/$model:ro" --env "MODEL_NAME=$model" tensorflow/serving)
xlnet serve "$directory" --port 8602 &
server=$!

stop() {
    kill "$server" || true
    docker stop "$container" > /dev/null || true
    rm -rf "$folder"
}
trap stop EXIT

for url in "$theirs" "$ours"; do
    for _ in $(seq 120); do
        curl --silent --fail "$url/v1/models/$model" > /dev/null && break
        sleep 1
    done
done

# Writes the answer of a server to a file, with the status in the last line.
ask() {
    local url=$1 method=$2 path=$3 body=$4 file=$5
    local data=()
    [ "$method" = POST ] && data=(--data "$body")
    curl --silent --request "$method" "${data[@]}" --write-out '\n%{http_code}' "$url$path" > "$file"
}

compare() {
    python3 - "$@" << 'END'
import json
import sys


def read(path):
    content, _, status = open(path, encoding="utf-8").read().rpartition("\n")
    return int(status), json.loads(content)


def differ(a, b):
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() != b.keys() or any(differ(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) != len(b) or any(map(differ, a, b))
    if isinstance(a, float) and isinstance(b, (int, float)):
        return abs(a - b) > 1e-5
    return a != b


(status, theirs), (our_status, ours) = map(read, sys.argv[1:])
is_error = status != 200
same = status == our_status and (theirs.keys() == ours.keys() if is_error else not differ(theirs, ours))
if not same:
    print(f"  TF Serving: {status} {theirs}\n  xlnet serve: {our_status} {ours}")
sys.exit(not same)
END
}

differences=0
check() {
    ask "$theirs" "$1" "$2" "$3" "$folder/theirs"
    ask "$ours" "$1" "$2" "$3" "$folder/ours"
    if compare "$folder/theirs" "$folder/ours"; then
        echo "same: $1 $2 $3"
    else
        echo "different: $1 $2 $3"
        differences=$((differences + 1))
    fi
}

check GET "/v1/models/$model" ""
check GET "/v1/models/$model/versions/1" ""
check GET "/v1/models/$model/metadata" ""
check GET "/v1/models/none" ""
predict=/v1/models/$model:predict
check POST "$predict" '{"instances": ["you won a prize", "lunch at noon?", ""]}'
check POST "$predict" '{"instances": [{"text": "you won a prize"}, {"text": "lunch at noon?"}]}'
check POST "$predict" '{"inputs": ["you won a prize", "lunch at noon?"]}'
check POST "$predict" '{"inputs": {"text": ["you won a prize"]}}'
check POST "$predict" '{"instances": [{"b64": "/w=="}, "caf\u00e9"]}'
check POST "$predict" '{"signature_name": "serving_default", "instances": ["a"]}'
check POST "/v1/models/$model/versions/1:predict" '{"instances": ["a"]}'
check POST "/v1/models/$model/versions/999:predict" '{"instances": ["a"]}'
check POST "/v1/models/none:predict" '{"instances": ["a"]}'
check POST "$predict" '{"signature_name": "none", "instances": ["a"]}'
check POST "$predict" '{"instances": []}'
check POST "$predict" '{"instances": [1]}'
check POST "$predict" '{"instances": ["a", ["b"]]}'
check POST "$predict" '{"instances": ["a"], "inputs": ["a"]}'
check POST "$predict" '{"instances": [{"txt": "a"}]}'
check POST "$predict" '{}'
check POST "$predict" '{'
echo "$differences differences"
[ "$differences" -eq 0 ]
