import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { packageRoot } from '../../playground/paths.ts'

/** A program of bench/go-server, built by `make bench-gateway`: load generator, reference, or stand-in for engines. */
export const goProgram = (name: 'load' | 'extproc' | 'upstream'): string => join(packageRoot(), '.run/go', name)

/** Of the compiler, such as `go1.26.8`. */
export const goVersion = (): string => execFileSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' }).trim()
