/** A column of a table for people. */
export interface Column<Row> {
  readonly title: string
  readonly of: (row: Row) => string
  /** Default: left. */
  readonly align?: 'right'
}

/** Aligned columns with two spaces between them, the titles first. */
export const renderTable = <Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string => {
  const cells = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ of }) => printable(of(row))))]
  const widths = columns.map((_, index) => Math.max(...cells.map((line) => line[index]?.length ?? 0)))
  return cells
    .map((line) =>
      line
        .map((cell, index) => {
          const width = widths[index] ?? 0
          return columns[index]?.align === 'right' ? cell.padStart(width) : cell.padEnd(width)
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Lines of names and values, the values below each other. */
export const renderFields = (fields: readonly (readonly [name: string, value: string])[]): string => {
  const width = Math.max(...fields.map(([name]) => name.length))
  return fields.map(([name, value]) => `${name.padEnd(width)}  ${printable(value)}`.trimEnd()).join('\n')
}

/** Without control characters: names of models come from clients, and must not reach a terminal as they are. */
export const printable = (text: string): string => text.replaceAll(/\p{C}/gu, '�')
