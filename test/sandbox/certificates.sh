# Keys and certificates (EC P-256). Sourced by bin/sandbox.
# shellcheck shell=bash

make_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null; }

make_authority() { # make_authority FOLDER NAME: ca.crt and ca.key
  mkdir -p "$1"
  make_key "$1/ca.key"
  openssl req -x509 -new -key "$1/ca.key" -days 3650 -subj "/CN=$2" -out "$1/ca.crt"
}

make_certificate() { # make_certificate AUTHORITY-FOLDER FILE SUBJECT EXTENSION...: FILE.crt and FILE.key
  local authority=$1 file=$2 subject=$3
  shift 3
  make_key "$file.key"
  # a random serial number: openssl's counter file races when hosts are created in parallel
  openssl req -new -key "$file.key" -subj "$subject" |
    openssl x509 -req -CA "$authority/ca.crt" -CAkey "$authority/ca.key" -set_serial "0x$(openssl rand -hex 8)" -days 3650 \
      -extfile <(printf '%s\n' "$@") -out "$file.crt" 2>/dev/null
}

make_kubeconfig() { # make_kubeconfig FILE SERVER AUTHORITY-FOLDER CERTIFICATE
  local target=$1 server=$2 authority=$3 certificate=$4
  (umask 077 && cat >"$target") <<YAML
apiVersion: v1
kind: Config
current-context: sandbox
contexts: [{name: sandbox, context: {cluster: sandbox, user: user}}]
clusters: [{name: sandbox, cluster: {server: "$server", certificate-authority-data: $(base64 -w0 "$authority/ca.crt")}}]
users: [{name: user, user: {client-certificate-data: $(base64 -w0 "$certificate.crt"), client-key-data: $(base64 -w0 "$certificate.key")}}]
YAML
}
