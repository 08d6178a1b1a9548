for (const box of document.querySelectorAll(".scroll, .chart")) {
  const at = box.querySelector(".diverging, .gutter .wrong, .gutter .first");
  if (!at) continue;
  const here = at.getBoundingClientRect(), frame = box.getBoundingClientRect();
  box.scrollTop += here.top - frame.top - (frame.height - here.height) / 2;
  if (!box.matches(".chart")) box.scrollLeft += here.left - frame.left - (frame.width - here.width) / 2;
}
