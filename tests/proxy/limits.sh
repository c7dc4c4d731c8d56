limits=()
