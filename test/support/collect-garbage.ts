import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Runs a full garbage collection of this process. */
export const collectGarbage = (): void => {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
}
