import { signal } from "@preact/signals";

/** The one canvas behind all cells: 100 canvases would cost the browser more than their squares do. */
interface Surface {
  readonly canvas: HTMLCanvasElement;
  /** Rises when the canvas has another size, and is therefore empty. */
  readonly version: number;
}

export const surface = signal<Surface | null>(null);

/** Gives the canvas the size of the box that it lies in, now and whenever that changes. Returns the function that ends this. */
export function spreadOver(box: HTMLElement, canvas: HTMLCanvasElement): () => void {
  const spread = () => {
    const { width, height } = box.getBoundingClientRect();
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(height * devicePixelRatio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    surface.value = { canvas, version: (surface.peek()?.version ?? 0) + 1 };
  };
  const observer = new ResizeObserver(spread);
  observer.observe(box);
  return () => observer.disconnect();
}

/** Where the element is in the canvas, in pixels of the page. */
export function originOf(element: HTMLElement, canvas: HTMLCanvasElement): { readonly x: number; readonly y: number } {
  const [own, all] = [element.getBoundingClientRect(), canvas.getBoundingClientRect()];
  return { x: Math.round(own.left - all.left), y: Math.round(own.top - all.top) };
}
