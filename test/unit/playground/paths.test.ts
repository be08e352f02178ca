import { homedir } from 'node:os'
import { expect, test } from '@jest/globals'
import { stateDir, toolsDir } from '../../../playground/paths.ts'

test.each([
  [
    'without variables',
    {},
    `${homedir()}/.cache/context-cache-gateway`,
    `${homedir()}/.local/state/context-cache-gateway`,
  ],
  [
    'with XDG_CACHE_HOME and XDG_STATE_HOME',
    { XDG_CACHE_HOME: '/c', XDG_STATE_HOME: '/s' },
    '/c/context-cache-gateway',
    '/s/context-cache-gateway',
  ],
  [
    'with relative paths, which count as unset',
    { XDG_CACHE_HOME: 'c', XDG_STATE_HOME: '' },
    `${homedir()}/.cache/context-cache-gateway`,
    `${homedir()}/.local/state/context-cache-gateway`,
  ],
])('installations and state lie in the folders of the user %s', (_name, env, tools, state) => {
  expect([toolsDir(env), stateDir(env)]).toEqual([tools, state])
})
