#!/bin/sh
# safetensors_interpreter.sh BUILD_FOLDER: prints the path of a Python interpreter that has the safetensors package. Its virtual environment is
# created in the build folder on first use. Exit code 77: the package is not available.
set -u
python=$1/python_safetensors/bin/python
exec 9>"$1/python_safetensors.lock" && flock 9 # other tests use it, too
if ! "$python" -c "import safetensors.numpy" 2>/dev/null; then
  rm -rf "$1/python_safetensors"
  python3 -m venv "$1/python_safetensors" >/dev/null 2>&1 || exit 77
  timeout 100 "$1/python_safetensors/bin/pip" install -q numpy safetensors >/dev/null 2>&1 || exit 77
fi
echo "$python"
