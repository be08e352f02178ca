// tsc emits only what it compiles; the Redis scripts are read from beside their adapter, here the compiled one.
import { cpSync } from 'node:fs'

cpSync('src', '.run/bench/src', { recursive: true, filter: (path) => !/\.[cm]?ts$/.test(path) })
