// tsc emits only what it compiles; the Redis scripts are read from beside their adapter at run time.
import { cpSync } from 'node:fs'

cpSync('src', 'dist/src', { recursive: true, filter: (path) => !/\.[cm]?ts$|tsconfig\.json$/.test(path) })
