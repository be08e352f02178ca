/** A problem of the configuration. Its message quotes no value that may be a secret. */
export interface ConfigProblem {
  readonly message: string
  /** The option; empty: the configuration as a whole. */
  readonly path: readonly string[]
  /** Options that contradict this one. The first that is set is named where this one has its default. */
  readonly against?: readonly (readonly string[])[]
}

/** The problem in a list, or an empty list. `option` and those of `against` are paths with dots. */
export const problemIf = (
  isWrong: boolean,
  option: string,
  message: string,
  against: readonly string[] = [],
): readonly ConfigProblem[] =>
  isWrong ? [{ message, path: option.split('.'), against: against.map((other) => other.split('.')) }] : []
