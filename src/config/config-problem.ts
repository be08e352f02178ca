import { z } from 'zod'

/** Something is wrong with the configuration. Never quotes a value, which may be a secret. */
export interface ConfigProblem {
  readonly message: string
  /** The option it is about; empty: the configuration as a whole. */
  readonly path: readonly string[]
}

/** All problems as a text for people, with the place of each. */
export const renderProblems = (problems: readonly ConfigProblem[]): string => z.prettifyError({ issues: problems })
