life=()
