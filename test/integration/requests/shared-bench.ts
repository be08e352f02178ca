import { useBench } from './bench.ts'

/** The one stack of all files that requests.test.ts imports. */
export const bench = useBench()
