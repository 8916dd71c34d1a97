"""Rows in, figures and words out: what pages and reports draw with. No Streamlit."""
