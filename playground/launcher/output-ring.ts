/** Limits of an `OutputRing`. */
export interface OutputRingOptions {
  /** Older lines are forgotten. Default: 400. */
  readonly maxLines?: number | undefined
  /** Longer lines are cut. Default: 4000. */
  readonly maxLineCharacters?: number | undefined
}

/** The last lines that a program printed, in bounded memory. */
export interface OutputRing {
  /** A sink for one stream; lines of several streams are kept in the order in which they were completed. */
  openStream(): OutputStreamSink
  /** The lines kept, oldest first, unfinished ones last. */
  lines(): readonly string[]
  /** Calls the listener with every line completed from now on; the answer ends that. */
  onLine(listener: (line: string) => void): () => void
}

/** Takes the text of one stream as it comes, split anywhere. */
export interface OutputStreamSink {
  write(text: string): void
  /** Completes a last line that has no line end. */
  end(): void
}

/** An empty ring. */
export function createOutputRing(options: OutputRingOptions = {}): OutputRing {
  const maxLines = options.maxLines ?? 400
  const maxLineCharacters = options.maxLineCharacters ?? 4000
  const kept: string[] = []
  const unfinished = new Map<OutputStreamSink, string>()
  const listeners = new Set<(line: string) => void>()

  const cut = (line: string): string =>
    line.length > maxLineCharacters ? `${line.slice(0, maxLineCharacters)}…` : line

  const complete = (line: string): void => {
    const shown = cut(line.endsWith('\r') ? line.slice(0, -1) : line)
    kept.push(shown)
    if (kept.length > maxLines) kept.shift()
    for (const listener of listeners) listener(shown)
  }

  return {
    openStream() {
      const sink: OutputStreamSink = {
        write(text) {
          const pieces = ((unfinished.get(sink) ?? '') + text).split('\n')
          const rest = pieces.pop() ?? ''
          for (const piece of pieces) complete(piece)
          unfinished.set(sink, rest.slice(0, maxLineCharacters + 1))
        },
        end() {
          const rest = unfinished.get(sink) ?? ''
          unfinished.delete(sink)
          if (rest !== '') complete(rest)
        },
      }
      return sink
    },
    lines: () => [...kept, ...[...unfinished.values()].filter((rest) => rest !== '').map(cut)].slice(-maxLines),
    onLine(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
