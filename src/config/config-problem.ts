import { z } from 'zod'

/** A problem of the configuration. Never quotes a value, which may be a secret. */
export interface ConfigProblem {
  readonly message: string
  /** The option; empty: the configuration as a whole. */
  readonly path: readonly string[]
}

/** The problem in a list, or an empty list. `option` is a path with dots. */
export const problemIf = (isWrong: boolean, option: string, message: string): readonly ConfigProblem[] =>
  isWrong ? [{ message, path: option.split('.') }] : []

/** All problems as text, with the option of each. */
export const renderProblems = (problems: readonly ConfigProblem[]): string => z.prettifyError({ issues: problems })
