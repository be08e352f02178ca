import { type ComponentChildren, h, type VNode } from './vendor/preact.js'

/** A column of a table of rows of `T`. */
export interface Column<T> {
  readonly title: string
  readonly isNumber?: boolean
  readonly cell: (row: T) => ComponentChildren
}

/**
 * A table whose first column heads its rows. On narrow screens each row is a card, with the titles beside the values; a
 * small table stays one, and its caption is not seen.
 */
export const Table = <T,>(props: {
  readonly caption: ComponentChildren
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  readonly isSmall?: boolean
}): VNode => {
  const { caption, columns, rows, keyOf, isSmall } = props
  return (
    <table class={isSmall ? 'small' : 'cards'}>
      <caption class={isSmall ? 'visually-hidden' : undefined}>{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ title, isNumber }) => (
            <th scope="col" key={title} class={isNumber ? 'number' : undefined}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map((column, index) => (
              <Cell key={column.title} column={column} row={row} isFirst={index === 0} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

const Cell = <T,>(props: { readonly column: Column<T>; readonly row: T; readonly isFirst: boolean }): VNode => {
  const { title, isNumber, cell } = props.column
  const shared = { class: isNumber ? 'number' : undefined, 'data-title': title }
  return props.isFirst ? (
    <th scope="row" {...shared}>
      {cell(props.row)}
    </th>
  ) : (
    <td {...shared}>{cell(props.row)}</td>
  )
}
