/** As preact.d.ts. */
export { default } from 'uplot'
