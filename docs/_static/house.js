// What scrolls by itself can be reached with the keyboard.
const reachable = async () => {
  if (window.MathJax && window.MathJax.startup) await window.MathJax.startup.promise;
  for (const each of document.querySelectorAll(".bd-article table, .bd-article mjx-container")) {
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
  }
};
window.addEventListener("load", reachable);
window.addEventListener("resize", reachable);
