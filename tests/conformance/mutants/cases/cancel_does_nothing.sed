# file: pool/release.c
# red: T76 T112 XC2 XC3 XC10
# who cancels stays in line
/^    case CLAIM_WAITING:$/,/break;/ s/^        (pool__unwait\(lease\)|claim->state = CLAIM_OVER);$//
