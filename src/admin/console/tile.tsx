import { type ComponentChildren, h, type VNode } from './vendor/preact.js'

/** One number with its name, and what puts it in relation. */
export const Tile = (props: {
  readonly title: string
  readonly value: ComponentChildren
  /** Beside the value, such as its unit. */
  readonly unit?: string
  /** `alert`: an operator should look at it; a sign says so too. */
  readonly tone?: 'plain' | 'alert'
  readonly children?: ComponentChildren
}): VNode => (
  <section class={`card tile ${props.tone ?? 'plain'}`}>
    <h3>{props.title}</h3>
    <p class="value">
      {props.tone === 'alert' ? <Sign>Look at this: </Sign> : null}
      <b>{props.value}</b>
      {props.unit === undefined ? null : <span class="unit"> {props.unit}</span>}
    </p>
    {props.children}
  </section>
)

/** A sign for what needs attention, with words for those who do not see it. */
export const Sign = (props: { readonly children: ComponentChildren }): VNode => (
  <span class="sign">
    <span aria-hidden="true">▲</span>
    <span class="visually-hidden">{props.children}</span>
  </span>
)

/** Names and values in pairs. */
export const Facts = (props: {
  readonly of: readonly (readonly [name: string, value: ComponentChildren])[]
}): VNode => (
  <dl class="facts">
    {props.of.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
)

/** How a whole is divided. The same numbers stand in words beside it. */
export const ShareBar = (props: {
  readonly parts: readonly { readonly color: `--${string}`; readonly value: number }[]
}): VNode => (
  <div class="share-bar" aria-hidden="true">
    {props.parts.map(({ color, value }) =>
      value > 0 ? <span key={color} style={{ flexGrow: value, background: `var(${color})` }} /> : null,
    )}
  </div>
)
