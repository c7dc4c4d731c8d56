/* random.c - random bits from a seed: splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
 * 2014), whose states may be any number and which is as good for neighbouring seeds. */
#include "link/testing/testing_internal.h"

uint64_t testing__random(uint64_t *state)
{
    uint64_t bits = *state += 0x9e3779b97f4a7c15u;

    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return bits ^ (bits >> 31);
}

double testing__draw(uint64_t *state)
{
    return (double)(testing__random(state) >> 11) * 0x1p-53;
}
