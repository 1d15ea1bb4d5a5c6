#!/bin/sh
# Models that others made, beside ONNX Runtime: models.sh GPLAN FOLDER [WORD...]
# With the Python that $PYTHON names where that has what it takes, else with one in FOLDER/venv.
set -u
here=$(dirname "$0")
folder=$2
python=${PYTHON:-python3}
packages='torch torchvision onnx onnxscript onnxruntime numpy'

has_packages() { # PYTHON
    "$1" -c 'import numpy, onnx, onnxruntime, onnxscript, torch, torchvision' 2>/dev/null
}

if ! has_packages "$python"; then
    python=$folder/venv/bin/python
    if ! has_packages "$python"; then
        echo "Installing in $folder/venv: $packages"
        mkdir -p "$folder"
        # shellcheck disable=SC2086
        python3 -m venv "$folder/venv" && "$python" -m pip install --quiet \
            --disable-pip-version-check $packages >"$folder/venv.log" 2>&1
    fi
    if ! has_packages "$python"; then
        echo "These Python packages cannot be had, so no models were compared: $packages"
        exit 0
    fi
fi
exec "$python" "$here/models.py" "$@"
