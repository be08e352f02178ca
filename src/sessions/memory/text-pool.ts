/** Stands for a text that is not there. */
export const noText = 0

/**
 * Texts that many sessions have in common (tenants, models, pods), each kept once under a number for as long as somebody uses it. Numbers begin at 1, are
 * small, and are given anew.
 */
export class TextPool {
  readonly #numbers = new Map<string, number>()
  readonly #texts: (string | undefined)[] = [undefined]
  readonly #uses: number[] = [0]
  readonly #free: number[] = []

  /** The number of a text, which is used once more; `noText` for undefined. */
  take(text: string | undefined): number {
    if (text === undefined) return noText
    const known = this.#numbers.get(text)
    if (known !== undefined) {
      this.#uses[known] = (this.#uses[known] ?? 0) + 1
      return known
    }
    const number = this.#free.pop() ?? this.#texts.length
    this.#numbers.set(text, number)
    this.#texts[number] = text
    this.#uses[number] = 1
    return number
  }

  /** Says that a number is used once less. */
  release(number: number): void {
    const text = this.#texts[number]
    if (text === undefined) return
    const uses = (this.#uses[number] ?? 0) - 1
    this.#uses[number] = uses
    if (uses > 0) return
    this.#numbers.delete(text)
    this.#texts[number] = undefined
    this.#free.push(number)
  }

  textOf(number: number): string | undefined {
    return this.#texts[number]
  }

  /** The number of a text in use; `noText` when nobody uses it. */
  find(text: string): number {
    return this.#numbers.get(text) ?? noText
  }
}
