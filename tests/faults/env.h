/* env.h - the env between the pool and the world's. */
#ifndef LINKPOOL_TESTS_FAULTS_ENV_H
#define LINKPOOL_TESTS_FAULTS_ENV_H

#include "tests/faults/scene.h"

/** Sets the scene's env: the world's, each call by way of the scene's fault. */
void env_begin(struct scene *scene);

#endif
